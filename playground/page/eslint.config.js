import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist/", "node_modules/", "src/host/bloomery.mjs"] },
  ...ts.configs.strict,
  ...svelte.configs["flat/recommended"],
  { files: ["**/*.svelte", "**/*.svelte.ts"], languageOptions: { parserOptions: { parser: ts.parser } } },
  { rules: { "@typescript-eslint/no-non-null-assertion": "off" } },
);
