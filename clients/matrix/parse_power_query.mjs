// Parses a file in Power Query's language M with Microsoft's own parser; fails unless all of it is M.

import { readFileSync } from "node:fs";

import powerQuery from "@microsoft/powerquery-parser";

const { DefaultSettings, TaskUtils } = powerQuery;
const [path] = process.argv.slice(2);
const task = await TaskUtils.tryLexParse(DefaultSettings, readFileSync(path, "utf8"));
if (!TaskUtils.isParseStageOk(task)) {
  // The error itself carries the whole state of the parser.
  console.error(`${path} is not M: ${task.error?.message ?? task.resultKind}`);
  process.exit(1);
}
console.log(`${path}: ${task.nodeIdMapCollection.astNodeById.size} nodes of M`);
