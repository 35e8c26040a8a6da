import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, loadEnv } from "vite";

// `npm run dev` serves the page from here and forwards other requests to a running `bloomery playground --port 8642`,
// or to another one: BLOOMERY_API=http://127.0.0.1:8101 npm run dev. The playground accepts only requests of its own
// page, so Host and Origin are rewritten.
const playground = loadEnv("", ".", "BLOOMERY_").BLOOMERY_API ?? "http://127.0.0.1:8642";

// The page without a server has the API in a worker, and may be in any folder of any server. Only its own files run.
const here = loadEnv("", ".", "BLOOMERY_").BLOOMERY_HOST === "browser";
const policy =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'";

export default defineConfig({
  plugins: [
    svelte(),
    {
      name: "head",
      transformIndexHtml: () =>
        here
          ? [
              {
                tag: "meta",
                attrs: { "http-equiv": "Content-Security-Policy", content: policy },
                injectTo: "head-prepend",
              },
              { tag: "meta", attrs: { property: "og:image", content: "./preview.png" }, injectTo: "head" },
            ]
          : [],
    },
  ],
  base: here ? "./" : "/",
  resolve: {
    alias: { $host: `/src/host/${here ? "browser" : "server"}.ts` },
  },
  worker: { format: "es" },
  build: { target: "es2022", reportCompressedSize: true, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": { target: playground, changeOrigin: true, headers: { origin: playground } } } },
});
