# deploy/pin_images.sh renews the digest.
ARG PYTHON_IMAGE=python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff

# Build: locked packages in a virtual environment, kernels compiled into a cache of their own.
FROM ${PYTHON_IMAGE} AS build
WORKDIR /srv
RUN python -m venv /opt/venv
# requirements-cluster.lock where kernels run on other machines too.
ARG LOCK=requirements.lock
COPY ${LOCK} ./requirements.lock
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: -r requirements.lock
# What the service never loads: tests, headers, other ways to stores elsewhere, and pip itself.
RUN find /opt/venv \( -type d -name tests -o -path '*/pyarrow/include' -o -path '*/pyarrow/*flight*' \
      -o -path '*/pyarrow/*s3*' -o -path '*/pyarrow/*gcs*' -o -path '*/pyarrow/*azure*' \) \
      -prune -exec rm -rf {} + \
    && find /opt/venv -regextype posix-extended -type d -regex '.*/botocore/data/[^/]+' \
      ! -regex '.*/(s3|signin|sso|sso-oidc|sts)' -prune -exec rm -rf {} + \
    && /opt/venv/bin/pip uninstall --yes --quiet setuptools pip
ENV NUMBA_CACHE_DIR=/opt/kernels PYTHONPATH=/srv:/srv/client PYTHONDONTWRITEBYTECODE=1 \
    PYTHONMALLOC=malloc \
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456
COPY accounting ./accounting
COPY mechanisms ./mechanisms
COPY storage ./storage
COPY app ./app
RUN /opt/venv/bin/python -m app.service.warm
COPY client ./client
# The handbook of the dashboard.
COPY docs ./docs
RUN /opt/venv/bin/python -m compileall -q /srv

# Run: no compiler, no package cache, code that the service user cannot write.
FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="PrivyPurse" org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 999 --no-create-home --shell /usr/sbin/nologin privypurse \
    && install -d -o 999 -m 0700 /data
WORKDIR /srv
COPY --from=build /opt/venv /opt/venv
COPY --from=build /srv /srv
COPY --from=build --chown=999 /opt/kernels /opt/kernels
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/srv:/srv/client PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/opt/kernels PURSE_DATA=/data \
    PYTHONMALLOC=malloc \
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456
USER 999
# /opt/kernels is a volume because a processor unlike the builder's compiles its own kernels there:
# the root file system may then be read-only.
VOLUME ["/data", "/opt/kernels"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "-m", "app.cli", "serve", "--host", "0.0.0.0", "--port", "8000", "--data", "/data"]
