import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig, type Plugin } from "vite";

const target = process.env.PENSTOCK_WEB_OUT ?? "../src/penstock/rest/static";

/** Tells a test which sources the committed files were built from: file names and contents, in order. */
function sourcesHash(): Plugin {
  return {
    name: "sources-hash",
    closeBundle() {
      const hash = createHash("sha256");
      for (const file of sources(".")) hash.update(`${file}\0`).update(readFileSync(file)).update("\0");
      writeFileSync(join(target, "sources.sha256"), `${hash.digest("hex")}\n`);
    },
  };
}

function sources(folder: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name === "node_modules" || entry.name.startsWith(".")) continue;
    if (entry.isDirectory()) found.push(...sources(path));
    else found.push(relative(".", path).split("\\").join("/"));
  }
  return found.sort();
}

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: target,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  plugins: [sourcesHash()],
});
