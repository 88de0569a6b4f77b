"""The TypeScript client on the real service, run by node; its types are those of the service's OpenAPI."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.web.serving import Server

FOLDER = Path(__file__).parents[2] / "clients/typescript"
PROGRAM = """
import { CallError, Client } from "./crowdrank.js";
const [, , url = "", invite = ""] = process.argv;
const client = await Client.join(url, invite, "longest");
let kept = 0;
for (;;) {
  const { requests } = await client.requests(4);
  if (!requests.length) break;
  const judgments = requests.map((one) => ({ request: one.id, answer: { grade: one.items[0].content.length - 1 } }));
  for (const result of await client.submit(judgments)) kept += Number(result.status === 200);
}
let refused = 0;
try { await client.skip(99999); } catch (error) { if (error instanceof CallError) refused = error.status; }
console.log(JSON.stringify({ kept, refused }));
"""
TYPES = """
import type { components } from "./openapi.js";
import type { Given, Judgment, Result } from "./crowdrank.js";
type Service = components["schemas"];
type Full<T> = { [K in keyof T]-?: T[K] extends (infer I)[] ? Full<I>[] : T[K] };
// what the service says it gives is what the client says one gets, neither more nor less, and what is sent is taken
export const got = (one: Service["Given"]): Given => one;
export const nothingElse = (one: Full<Given>): Full<Service["Given"]> => one;
export const everything = (one: Full<Service["Given"]>): Full<Given> => one;
export const sent = (one: Required<Judgment>): Omit<Service["Judgment"], "next"> => one;
export const result = (one: Service["Kept"] & { status: number }): Result => one;
// @ts-expect-error: there is no such answer
export const wrong: Judgment = { request: 1, answer: { ranking: ["a"] } };
"""


def run(*command: str, folder: Path) -> str:
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_node_works_through_a_campaign(tmp_path):
    node, tsc, made = (shutil.which(name) for name in ("node", "tsc", "openapi-typescript"))
    if node is None:
        pytest.skip("node is not installed")
    items = "item,content\n" + "".join(f"i{n},{'x' * (1 + n % 4)}\n" for n in range(10))
    for path in FOLDER.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    with Server(tmp_path, items=items, scheme='"1-overlap"') as server:
        told = run(node, "program.mjs", server.url, server.invite(), folder=tmp_path)
        assert json.loads(told) == {"kept": 10, "refused": 404}
        assert server.owner("GET", "/campaign").json()["judgments"]["n"] == 10
        (tmp_path / "openapi.json").write_text(server.owner("GET", "/openapi.json").text, encoding="utf-8")
    if tsc is None or made is None:
        pytest.skip("types need npm install --global typescript@5 openapi-typescript")
    (tmp_path / "types.ts").write_text(TYPES, encoding="utf-8")
    (tmp_path / "node.d.ts").write_text("declare const process: { argv: string[] };\n", encoding="utf-8")
    run(made, "openapi.json", "--output", "openapi.ts", folder=tmp_path)
    options = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--module", "nodenext", "--target", "es2022"]
    run(tsc, *options, "program.mjs", "types.ts", "node.d.ts", folder=tmp_path)
