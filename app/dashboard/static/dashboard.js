// What htmx does not do: show how much of an upload has gone, and copy a text.
// Every page works without it.
document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = event.target.querySelector("progress[data-upload]");
  if (bar && event.detail.lengthComputable) {
    bar.hidden = false;
    bar.max = event.detail.total;
    bar.value = event.detail.loaded;
  }
});
