/** Builds the dashboard into the Python package, or into the folder that PENSTOCK_WEB_OUT names. */

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const target = process.env.PENSTOCK_WEB_OUT ?? "../src/penstock/rest/static";

/** All files here that decide about the result: their names, in order. */
function sources(folder = "") {
  return readdirSync(folder || ".", { withFileTypes: true })
    .filter((entry) => entry.name !== "node_modules" && !entry.name.startsWith("."))
    .flatMap((entry) => (entry.isDirectory() ? sources(`${folder}${entry.name}/`) : [`${folder}${entry.name}`]))
    .sort();
}

rmSync(target, { recursive: true, force: true });
mkdirSync(join(target, "assets"), { recursive: true });
await build({
  entryPoints: { index: "src/main.tsx" },
  outdir: join(target, "assets"),
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});
cpSync("src/icon.svg", join(target, "assets/icon.svg"));
cpSync("index.html", join(target, "index.html"));

// Tells a test which sources the committed files were built from.
const hash = createHash("sha256");
for (const file of sources()) hash.update(`${file}\0`).update(readFileSync(file)).update("\0");
writeFileSync(join(target, "sources.sha256"), `${hash.digest("hex")}\n`);
