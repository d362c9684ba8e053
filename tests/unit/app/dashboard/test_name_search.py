"""Users and datasets are searched by a part of their names, page by page."""

from __future__ import annotations

import re
from typing import Any

from tests.support.browser import SignIn, words
from tests.support.service import Service


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/ui/\w+/([^"]+)"', page)


def test_users_are_searched_by_name(people: Service, sign_in: SignIn) -> None:
    services: Any = people.client.app.state.services  # type: ignore[attr-defined]
    admin = services.users.find("ada")
    names = [f"Many_{number}" for number in range(52)]
    for name in names:
        services.users.create(name, ["analyst"], actor=admin)
    browser = sign_in("ada")
    first = browser.get("/ui/users", q="many_").text
    assert rows(first) == names[:1:-1]
    (older,) = re.findall(r'href="(/ui/users\?q=many_&amp;cursor=[^"]+)"', first)
    assert rows(browser.get(older.replace("&amp;", "&")).text) == names[1::-1]
    assert rows(browser.get("/ui/users", q="NA").text) == ["ana"]
    # Danger: _ and % are wildcards of LIKE in SQL. The search takes _ literally and refuses %,
    # which no name contains.
    assert rows(browser.get("/ui/users", q="a_a").text) == []
    assert browser.get("/ui/users", q="%").status_code == 422


def test_datasets_are_searched_among_those_that_one_may_see(
    people: Service, sign_in: SignIn
) -> None:
    for name in ("web", "Webb", "other"):
        people.dataset("olga", None, name=name)
    people.grant("olga", "web", "ana")
    assert rows(sign_in("olga").get("/ui/datasets", q="WEB").text) == ["Webb", "web"]
    assert rows(sign_in("ana").get("/ui/datasets", q="web").text) == ["web"]
    nothing = sign_in("otto").get("/ui/datasets", q="absent").text
    assert "No name contains “absent”" in words(nothing)
