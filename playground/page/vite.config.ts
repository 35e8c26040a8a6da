import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, loadEnv } from "vite";

// `npm run dev` serves the page from here and forwards other requests to a running `bloomery playground --port 8642`,
// or to another one: BLOOMERY_API=http://127.0.0.1:8101 npm run dev. The playground accepts only requests of its own
// page, so Host and Origin are rewritten.
const playground = loadEnv("", ".", "BLOOMERY_").BLOOMERY_API ?? "http://127.0.0.1:8642";

export default defineConfig({
  plugins: [svelte()],
  build: { target: "es2022", reportCompressedSize: true, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": { target: playground, changeOrigin: true, headers: { origin: playground } } } },
});
