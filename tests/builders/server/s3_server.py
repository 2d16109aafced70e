"""A server of S3's protocol in a process of its own, with a bucket and a user who may read it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "records"
READS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}
# Making a user who may read, a key of hers and the bucket.
CALLS_WITHOUT_A_USER = 4
START_SECONDS_MAX = 120


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes:
        address: of the server.
        key: of a user who may do anything with the bucket.
        secret: of the same.
        process: of the server.

    """

    address: str
    key: str
    secret: str
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which a client finds the server and the user."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            # Nothing of the machine's own, and no request leaves it.
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_MAX_ATTEMPTS": "1",
        }

    def client(self) -> Any:
        """Return a client of the user."""
        return _client("s3", self.address, self.key, self.secret)

    def put(self, name: str, body: bytes) -> None:
        """Store an object."""
        self.client().put_object(Bucket=BUCKET, Key=name, Body=body)

    def put_in_pieces(self, name: str, body: bytes, piece_bytes: int) -> int:
        """Store an object by several requests, and return how many pieces it has."""
        client = self.client()
        where = {"Bucket": BUCKET, "Key": name}
        upload = client.create_multipart_upload(**where)["UploadId"]
        pieces = [body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)]
        stored = [
            {
                "PartNumber": number,
                "ETag": client.upload_part(**where, UploadId=upload, PartNumber=number, Body=piece)[
                    "ETag"
                ],
            }
            for number, piece in enumerate(pieces, start=1)
        ]
        client.complete_multipart_upload(
            **where, UploadId=upload, MultipartUpload={"Parts": stored}
        )
        return len(pieces)

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.client().delete_object(Bucket=BUCKET, Key=name)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server, make the bucket and its user, and end it afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "INITIAL_NO_AUTH_ACTION_COUNT": str(CALLS_WITHOUT_A_USER),
        "S3_UPLOAD_PART_MIN_SIZE": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(port, process)
        key, secret = _user(address)
        yield S3Server(address, key, secret, process)
    finally:
        process.kill()
        process.wait()


def _user(address: str) -> tuple[str, str]:
    """Make the bucket and a user for it; return her key and its secret."""
    users = _client("iam", address, "none", "none")
    users.create_user(UserName="reader")
    made = users.create_access_key(UserName="reader")["AccessKey"]
    users.put_user_policy(UserName="reader", PolicyName="reads", PolicyDocument=json.dumps(READS))
    _client("s3", address, "none", "none").create_bucket(Bucket=BUCKET)
    return made["AccessKeyId"], made["SecretAccessKey"]


def _client(service: str, address: str, key: str, secret: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=address,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}),
    )


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server takes connections."""
    ends = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise BotoCoreError
