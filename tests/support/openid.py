"""The provider oidc-provider-mock on this machine, which also checks PKCE and states its issuer.

The package does neither. Its tokens, keys, pages and refresh are its own.
"""

from __future__ import annotations

import json
import os
import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from io import BytesIO
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import oidc_provider_mock
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from tests.support.patience import PATIENCE

CLIENT = "dashboard"


class OpenIDServer:
    """A provider whose every check can be switched off, and whose metadata can be changed."""

    def __init__(self) -> None:
        # The library authlib refuses plain HTTP without this variable, also on this machine.
        os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
        self._app = oidc_provider_mock.app()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._challenges: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        self.checks_pkce, self.metadata = True, dict[str, Any]()
        self.exchanges: list[dict[str, str]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def user(self, subject: str, *roles: str) -> None:
        """Create a user with these roles, or replace the roles."""
        claims = {"roles": [f"privypurse-{role}" for role in roles]}
        url = f"{self.issuer}/users/{subject}"
        assert httpx.put(url, json=claims, timeout=PATIENCE, verify=False).is_success

    def sign_in(self, address: str, subject: str) -> str:
        """Sign in as a person does; returns the address to which the browser is sent back."""
        assert address.startswith(self.issuer)
        # The provider speaks plain HTTP. Without ``verify=False`` the client would read all root
        # certificates, which takes 40 ms.
        reply = httpx.post(address, data={"sub": subject}, timeout=PATIENCE, verify=False)
        assert reply.is_redirect, reply.text
        return str(reply.headers["location"])

    def _answer(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        sent = request.form.to_dict() if request.path == "/oauth2/token" else {}
        if sent:
            self.exchanges.append(sent)
            if self.checks_pkce and not self._knows(sent):
                refused = Response('{"error":"invalid_grant"}', 400, mimetype="application/json")
                return refused(environ, start_response)
            content = urlencode(sent).encode()
            environ = dict(environ, CONTENT_LENGTH=str(len(content)))
            environ["wsgi.input"] = BytesIO(content)
            for cached in [name for name in environ if name.startswith("werkzeug.request")]:
                del environ[cached]
        reply = Response.from_app(self._app, environ, buffered=True)
        if request.path.endswith("openid-configuration"):
            described = json.loads(reply.data) | {
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                **self.metadata,
            }
            reply.set_data(json.dumps(described))
        elif "location" in reply.headers:
            place = urlsplit(reply.headers["location"])
            returned = dict(parse_qsl(place.query))
            if "code" in returned:
                challenge = parse_qs(urlsplit(request.url).query).get("code_challenge", [""])[0]
                self._challenges[returned["code"]] = challenge
                returned["iss"] = self.issuer
                reply.headers["location"] = place._replace(query=urlencode(returned)).geturl()
        elif reply.mimetype == "text/html":
            # The only link of the page is a style sheet on another host, which tests must not load.
            reply.set_data(re.sub(rb"<link[^>]*>", b"", reply.data))
        return reply(environ, start_response)

    def _knows(self, sent: dict[str, str]) -> bool:
        """Whether the verifier of a code is that of its challenge (RFC 7636, S256)."""
        if "code" not in sent:
            return True
        digest = sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        return self._challenges.get(sent["code"]) == challenge
