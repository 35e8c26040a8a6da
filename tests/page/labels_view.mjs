// Finds clipped and overlapping text in the page as it is drawn: in HTML, in the SVG of charts, and on canvases.
//
//   await recordCanvasText(page);            before page.goto()
//   assert.deepEqual(await faultsOf(page), []);
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { source } from "./browser.mjs";

/** Keeps the texts that are on each canvas, with their boxes, until the canvas is cleared. */
export const recordCanvasText = (page) =>
  page.addInitScript(() => {
    const { prototype } = CanvasRenderingContext2D;
    const { clearRect, fillText } = prototype;
    prototype.clearRect = function (...box) {
      this.canvas.texts = [];
      clearRect.apply(this, box);
    };
    prototype.fillText = function (text, x, y, ...rest) {
      const size = this.measureText(text);
      const { a, d } = this.getTransform();
      this.canvas.texts ??= [];
      const ink = {
        left: x - size.actualBoundingBoxLeft,
        right: x + size.actualBoundingBoxRight,
        top: y - size.actualBoundingBoxAscent,
        bottom: y + size.actualBoundingBoxDescent,
      };
      // Whole pixels: those at the edges are only touched.
      const [left, top] = [Math.ceil(ink.left * a), Math.ceil(ink.top * d)];
      const box = [
        left,
        top,
        Math.max(1, Math.floor(ink.right * a) - left),
        Math.max(1, Math.floor(ink.bottom * d) - top),
      ];
      const pixels = () => (globalThis.keepsPixels ? this.getImageData(...box).data : null);
      const behind = pixels();
      fillText.call(this, text, x, y, ...rest);
      const { texts } = this.canvas;
      texts.push({ text, ...ink, fill: this.fillStyle, box, behind, drawn: pixels() });
    };
  });

/** Waits until fonts are loaded, and charts and canvases are drawn in the present size. */
export const settled = (page, wait = 80) =>
  page.evaluate(async (wait) => {
    await document.fonts.ready;
    const frame = () => new Promise((go) => requestAnimationFrame(go));
    await frame();
    await frame();
    await new Promise((go) => setTimeout(go, wait));
    await frame();
  }, wait);

/** All faults of the page in sentences; only those of canvases if `only` is "canvas". */
export const faultsOf = (page, only = "") =>
  page.evaluate((only) => {
    const faults = [];
    const said = (text) => JSON.stringify(text.replace(/\s+/g, " ").trim().slice(0, 40));
    const px = (n) => `${Math.ceil(n)} px`;
    const isShown = (node) =>
      node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      !node.closest(".hidden, [aria-hidden=true].skip");
    /** How far two boxes overlap, in pixels: the smaller of width and height. */
    const overlap = (a, b) =>
      Math.min(
        Math.min(a.right, b.right) - Math.max(a.left, b.left),
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top),
      );
    /** Line boxes include space above and below the letters, which may overlap. */
    const letters = ({ left, right, top, bottom }) => {
      const space = 0.15 * (bottom - top);
      return { left, right, top: top + space, bottom: bottom - space };
    };

    // ---- canvases ----
    for (const canvas of document.querySelectorAll("main canvas")) {
      if (!isShown(canvas) || !canvas.texts) continue;
      const { width, height } = canvas.getBoundingClientRect();
      const [size, columns, left] = ["size", "columns", "left"].map((name) => Number(canvas.dataset[name]));
      const texts = canvas.texts.toSorted((a, b) => a.top - b.top || a.left - b.left);
      const bad = {
        "outside of the picture": [],
        [`wider than its cell of ${px(size)}`]: [],
        "covered by the next": [],
      };
      const [outside, wide, covered] = Object.values(bad);
      for (const [i, one] of texts.entries()) {
        if (one.left < -0.5 || one.top < -0.5 || one.right > width + 0.5 || one.bottom > height + 0.5)
          outside.push(one);
        const column = Math.floor(((one.left + one.right) / 2 - left) / size);
        const isCell = /^[\d,]+$/.test(one.text) && column >= 0 && column < columns && one.right > left;
        if (isCell && (one.left < left + column * size - 0.5 || one.right > left + (column + 1) * size - 1.5))
          wide.push(one);
        for (let j = i + 1; j < texts.length && texts[j].top < one.bottom - 0.5; ++j)
          if (overlap(one, texts[j]) > 0.5) covered.push(one);
      }
      for (const [what, all] of Object.entries(bad))
        if (all.length > 0) faults.push(`canvas: ${said(all[0].text)} is ${what}, and ${all.length - 1} more`);
    }
    if (only === "canvas") return faults;

    // ---- charts ----
    for (const svg of document.querySelectorAll("main svg")) {
      const frame = svg.getBoundingClientRect();
      const name = `chart ${said(svg.closest("figure")?.querySelector("figcaption")?.textContent ?? "")}`;
      const texts = [...svg.querySelectorAll("text")]
        .filter((one) => one.textContent.trim() !== "" && isShown(one))
        .map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
      for (const [i, { text, box }] of texts.entries()) {
        const [over, under] = [frame.top - box.top, box.bottom - frame.bottom].map((by) => by - 0.2 * box.height);
        const out = Math.max(frame.left - box.left, box.right - frame.right, over, under);
        if (out > 0.5) faults.push(`${name}: ${said(text)} is clipped by ${px(out)}`);
        for (const other of texts.slice(i + 1)) {
          if (overlap(letters(box), letters(other.box)) > 1)
            faults.push(`${name}: ${said(text)} overlaps ${said(other.text)}`);
        }
      }
    }

    // ---- HTML ----
    const lines = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = walk.currentNode;
      const parent = node.parentElement;
      if (
        node.data.trim() === "" ||
        !isShown(parent) ||
        parent.closest("svg, math, option, noscript, script, style, .skip")
      )
        continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) if (box.width > 0) lines.push({ node, parent, box, text: node.data });
    }
    const edge = document.documentElement.clientWidth;
    for (const { parent, box, text } of lines) {
      let scrolls = false;
      for (let around = parent; around && around !== document.documentElement; around = around.parentElement) {
        const style = getComputedStyle(around);
        if (style.display === "inline") continue;
        if (/auto|scroll/.test(style.overflowX + style.overflowY)) {
          scrolls = true;
          break;
        }
        const frame = around.getBoundingClientRect();
        const by = Math.max(
          style.overflowX === "visible" ? 0 : Math.max(frame.left - box.left, box.right - frame.right),
          style.overflowY === "visible"
            ? 0
            : Math.max(frame.top - box.top, box.bottom - frame.bottom) - 0.25 * box.height,
        );
        if (by > 1) {
          faults.push(`${said(text)} is clipped by ${px(by)}`);
          break;
        }
      }
      if (!scrolls && (box.right > edge + 0.5 || box.left < -0.5))
        faults.push(`${said(text)} is outside of the window`);
    }
    lines.sort((a, b) => a.box.top - b.box.top);
    const scroller = (node) => {
      for (let one = node; one; one = one.parentElement)
        if (/auto|scroll/.test(getComputedStyle(one).overflowX + getComputedStyle(one).overflowY)) return one;
      return null;
    };
    for (const [i, one] of lines.entries()) {
      for (let j = i + 1; j < lines.length && lines[j].box.top < one.box.bottom; ++j) {
        const other = lines[j];
        if (other.node === one.node) continue;
        if (overlap(letters(one.box), letters(other.box)) <= 1.5) continue;
        // What is scrolled out of sight covers nothing.
        if (scroller(one.parent) !== scroller(other.parent)) continue;
        faults.push(`${said(one.text)} overlaps ${said(other.text)}`);
      }
    }

    // ---- fields ----
    const pen = document.createElement("canvas").getContext("2d");
    for (const field of document.querySelectorAll("main input, main select")) {
      if (!isShown(field) || /checkbox|radio|range|file/.test(field.type)) continue;
      const text = field.value === "" ? field.placeholder : (field.selectedOptions?.[0]?.text ?? field.value);
      if (!text) continue;
      const style = getComputedStyle(field);
      pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      const arrow = field.tagName === "SELECT" ? 16 : 0;
      const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
      const by = pen.measureText(text).width - room;
      if (by > 1) faults.push(`field ${said(text)} is clipped by ${px(by)}`);
    }
    for (const one of document.querySelectorAll("main *")) {
      if (isShown(one) && getComputedStyle(one).textOverflow === "ellipsis" && one.scrollWidth > one.clientWidth + 1)
        faults.push(`${said(one.textContent)} is cut off with an ellipsis`);
    }
    return [...new Set(faults)];
  }, only);

/** A module of the page that imports nothing but types, to be tested by itself. */
export async function moduleOf(name) {
  const folder = path.resolve(process.env.BLOOMERY_PAGE_PACKAGES ?? path.join(source, "build/page"));
  const { transpile, ModuleKind, ScriptTarget } = createRequire(path.join(folder, "package.json"))("typescript");
  const text = fs.readFileSync(path.join(source, "playground/page/src", name), "utf8");
  const script = transpile(text, {
    module: ModuleKind.ES2022,
    target: ScriptTarget.ES2022,
    verbatimModuleSyntax: true,
  });
  return import(`data:text/javascript,${encodeURIComponent(script)}`);
}
