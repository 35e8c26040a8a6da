import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, loadEnv } from "vite";

// `npm run dev` serves the page from here. With BLOOMERY_API=http://127.0.0.1:25666 it is the page of a running
// `bloomery playground`, which accepts only requests of its own page, so Host and Origin are rewritten. src/host needs
// the module, which tools/build-page makes.
const playground = loadEnv("", ".", "BLOOMERY_").BLOOMERY_API;

// The page may be in any folder of any server. Only its own files run.
const policy =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'";

export default defineConfig({
  plugins: [
    svelte(),
    {
      name: "head",
      apply: "build",
      transformIndexHtml: () => [
        {
          tag: "meta",
          attrs: { "http-equiv": "Content-Security-Policy", content: policy },
          injectTo: "head-prepend",
        },
      ],
    },
    {
      name: "served",
      apply: "serve",
      transformIndexHtml: (html) => (playground ? html.replace("<html ", "<html data-served ") : html),
    },
  ],
  base: "./",
  worker: { format: "es" },
  build: { target: "es2022", reportCompressedSize: true, chunkSizeWarningLimit: 900 },
  server: playground
    ? { proxy: { "/api": { target: playground, changeOrigin: true, headers: { origin: playground } } } }
    : {},
});
