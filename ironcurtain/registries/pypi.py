"""The Python package index, read-only: project pages with young files marked, and files that are judged one by one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ironcurtain.http.fields import pick
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.fetching import Unusable
from ironcurtain.registries.location import read_location
from ironcurtain.registries.pypi_index import JSON, NoIndex, ProjectFile, read_index
from ironcurtain.registries.pypi_pages import Address, chosen_format, write_html, write_json, write_release
from ironcurtain.registries.pypi_paths import (
    FOLDER,
    FileRequest,
    ProjectPage,
    PyPIRequest,
    ReleaseData,
    owners,
    read_file_path,
    read_index_path,
)
from ironcurtain.registries.registry import Store, local
from ironcurtain.registries.remembering import Remembered

INDEX: Final = "pypi.org"
FILES: Final = "files.pythonhosted.org"
"""The hosts that clients ask unless they are told otherwise."""

_PATHS: Final = (
    "only project pages (/simple/NAME/) and files are open, to install packages; there is no search or upload"
)

_ACCEPT: Final = frozenset(("accept",))


class PyPI:
    """
    :param url: of the upstream index, as ``pip`` takes it (``--index-url``); empty: PyPI.

    :ivar hosts: see :class:`~ironcurtain.registries.registry.Registry`.
    """

    quiet: re.Pattern[str] | None = None
    hosts: Collection[tuple[str, int]]

    def __init__(self, store: Store, url: str = "") -> None:
        self._store, self._known = store, Remembered[ProjectFile]()
        self._upstream = read_location(url or f"https://{INDEX}/simple")
        self.hosts = frozenset(((INDEX, 443), (FILES, 443), (self._upstream.host, self._upstream.port)))

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Registry`."""
        match self._read(host, head.path):
            case None:
                return RequestRefusal(403, "not-for-installing", f"{_PATHS}.")
            case FileRequest() as request:
                return await self._deliver(request)
            case ProjectPage(project):
                return await self._page(project, chosen_format(pick(head.headers, _ACCEPT).get("accept", [])), host)
            case ReleaseData(project, version):
                return await self._release(project, version, host)

    def _read(self, host: str, path: str) -> PyPIRequest | None:
        if host == FILES:
            return read_file_path(path)
        if host == INDEX:
            return read_index_path(path)
        rest = self._upstream.below(path)
        page = None if rest is None else read_index_path(f"/simple{rest}")
        return page or read_file_path(f"/packages{path}")

    async def _project(self, project: str) -> list[ProjectFile] | RequestRefusal:
        page = await self._store.look_up(project, f"{self._upstream.url}/{project}/", JSON)
        if isinstance(page, RequestRefusal):
            return page
        now = self._store.now()
        try:
            files = read_index(page.body, page.url, project, now)
        except NoIndex as e:
            raise Unusable(f"{self._upstream.url} {e}", project) from None
        self._known.put(project, {file.filename: file for file in files}, now.timestamp())
        return files

    async def _page(self, project: str, media: str, host: str) -> LocalResponse | RequestRefusal:
        files = await self._project(project)
        if isinstance(files, RequestRefusal):
            return files
        # Of a page whose files are all yanked, pip shows no reason.
        if refusal := self._store.policy.refuse_all([file.release for file in files], self._store.now()):
            return self._store.refuse(refusal, project)
        write = write_json if media == JSON else write_html
        body = write(project, files, self._withheld, self._address(host))
        return local(200, "", media if media == JSON else f"{media}; charset=utf-8", body, ("vary", "accept"))

    async def _release(self, project: str, version: str, host: str) -> LocalResponse | RequestRefusal:
        files = await self._project(project)
        if isinstance(files, RequestRefusal):
            return files
        body = write_release(project, version, files, self._withheld, self._address(host))
        if body is None:
            return RequestRefusal(404, "package-missing", f"{project} has no version {version}.")
        return local(200, "", "application/json", body)

    async def _deliver(self, request: FileRequest) -> LocalResponse | RequestRefusal:
        """The file's name tells its project, whose page tells the rest: addresses of files can stand in lock files."""
        missing = RequestRefusal(404, "package-missing", f"no project of the index has the file {request.filename}.")
        refused: RequestRefusal | None = None
        for owner in owners(request.filename):
            files = self._known.get(owner.project, self._store.now().timestamp())
            if files is None or request.filename not in files:
                found = await self._project(owner.project)
                if isinstance(found, RequestRefusal):
                    refused = found
                    continue
                files = {file.filename: file for file in found}
            if request.filename in files:
                return await self._deliver_file(files[request.filename], request.metadata)
        return refused or missing

    async def _deliver_file(self, file: ProjectFile, metadata: bool) -> LocalResponse | RequestRefusal:
        if not metadata:
            return await self._store.deliver(file.release, "application/octet-stream")
        release = file.metadata_release()
        if release is None:
            return RequestRefusal(404, "package-missing", f"the index has no metadata beside {file.filename}.")
        return await self._store.deliver(release, "application/octet-stream", installs=False)

    def _withheld(self, file: ProjectFile) -> str:
        policy, published = self._store.policy, file.release.published
        if not policy.is_young(published, self._store.now()):
            return ""
        advice = "choose an older version, or ask the user to change min_age"
        return f"IronCurtain: {policy.explain_age(published)}; {advice}"

    def _address(self, host: str) -> Address:
        """
        :returns: tells where clients find files: on the host of PyPI's files, so that lock files name it; or on that of
            a private index, if they ask that.
        """
        private = host not in (INDEX, FILES)
        origin = self._upstream.origin if private else f"https://{FILES}"

        def address(file: ProjectFile) -> str:
            url = file.release.url
            if private and url.startswith(f"{origin}/"):
                return url
            _, folder, rest = url.partition("?")[0].rpartition(FOLDER)
            known = bool(folder) and not private and read_file_path(folder + rest) is not None
            return f"{origin}{FOLDER}{rest if known else f'{file.release.name}/{file.filename}'}"

        return address
