"""The TypeScript client on the real service, run by node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.web.serving import Server

CLIENT = Path(__file__).parents[2] / "clients/typescript/crowdrank.js"
PROGRAM = """
const { Client, CallError } = await import(process.argv[1]);
const client = await Client.join(process.argv[2], process.argv[3], "longest");
let kept = 0;
for (;;) {
  const { requests } = await client.requests(4);
  if (!requests.length) break;
  const judgments = requests.map((one) => ({ request: one.id, answer: { grade: one.items[0].content.length - 1 } }));
  for (const result of await client.submit(judgments)) kept += result.status === 200;
}
let refused = null;
try { await client.skip(99999); } catch (error) { refused = [error instanceof CallError, error.status]; }
console.log(JSON.stringify({ kept, refused }));
"""


@pytest.mark.slow
def test_node_works_through_a_campaign(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    items = "item,content\n" + "".join(f"i{n},{'x' * (1 + n % 4)}\n" for n in range(10))
    with Server(tmp_path, items=items, scheme='"1-overlap"') as server:
        ran = subprocess.run(
            [node, "--input-type=module", "-e", PROGRAM, CLIENT.as_uri(), server.url, server.invite()],
            capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {"kept": 10, "refused": [True, 404]}
        assert server.owner("GET", "/campaign").json()["judgments"]["n"] == 10
