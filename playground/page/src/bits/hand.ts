// Mouse and touch input of the picture: point, drag, wheel and pinch.
import type { Cursor } from "./cursor.svelte";
import type { Sight } from "./sight.svelte";

/** Milliseconds that the mouse must rest before its square is selected. */
const rest = 120;
/** Minimum milliseconds between two zoom steps, because trackpads send many small wheel events. */
const between_turns = 60;

export class Hand {
  #fingers = new Map<number, { x: number; y: number }>();
  /** Distance of the two fingers at the last zoom step. */
  #apart = 0;
  #dragged = 0;
  #hovering: ReturnType<typeof setTimeout> | undefined;
  #lastTurn = 0;

  constructor(
    private readonly canvas: () => HTMLCanvasElement,
    private readonly sight: Sight,
    private readonly cursor: Cursor,
  ) {}

  get touches(): boolean {
    return this.#fingers.size > 0;
  }

  /** Svelte registers wheel listeners as passive; this one must be able to prevent scrolling. {@attach hand.wheels} */
  wheels = (node: HTMLElement): (() => void) => {
    node.addEventListener("wheel", this.#wheel, { passive: false });
    return () => node.removeEventListener("wheel", this.#wheel);
  };

  #wheel = (e: WheelEvent): void => {
    const now = performance.now();
    const by = e.deltaY < 0 ? -1 : 1;
    // At the last zoom level, let the page scroll.
    if (!this.sight.canZoom(by) && !e.ctrlKey) return;
    e.preventDefault();
    if (now - this.#lastTurn < between_turns) return;
    this.#lastTurn = now;
    this.cursor.zoom(by, ...this.#at(e));
  };

  down = (e: PointerEvent): void => {
    this.canvas().setPointerCapture(e.pointerId);
    this.#fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.#dragged = 0;
    this.#apart = this.#spread();
  };

  move = (e: PointerEvent): void => {
    const was = this.#fingers.get(e.pointerId);
    if (!was) {
      if (e.pointerType === "mouse") this.#hover(e);
      return;
    }
    const y = e.clientY - was.y;
    this.#fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.#dragged += Math.abs(y) + Math.abs(e.clientX - was.x);
    if (this.#fingers.size === 2) this.#pinch(e);
    else if (this.#dragged > 4 && this.sight.grid) {
      const left = this.sight.drag(y);
      // At either end, a touch scrolls the page; otherwise the finger would be stuck in the picture.
      if (e.pointerType === "touch" && left !== 0 && this.sight.scrolls) scrollBy(0, left);
    }
  };

  up = (e: PointerEvent): void => {
    const single = this.#fingers.size === 1;
    this.#fingers.delete(e.pointerId);
    if (!single || this.#dragged > 6 || e.type === "pointercancel") return;
    const { cursor } = this;
    const cell = this.sight.cellAt(...this.#at(e));
    if (cell >= 0 && this.sight.grid!.unit > 1 && cell === cursor.cell && cursor.box) cursor.open(cell);
    else void cursor.ask(cell);
  };

  /** A finger leaves with each tap, which must not hide what the tap has shown. */
  leave = (e: PointerEvent): void => {
    if (e.pointerType !== "touch") this.hide();
  };

  hide = (): void => {
    clearTimeout(this.#hovering);
    this.cursor.hide();
  };

  #at(e: MouseEvent): [x: number, y: number] {
    const r = this.canvas().getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  }

  #hover(e: PointerEvent): void {
    clearTimeout(this.#hovering);
    const { cursor } = this;
    const cell = this.sight.cellAt(...this.#at(e));
    if (cell < 0) cursor.hide();
    else if (cell !== cursor.cell || !cursor.box) this.#hovering = setTimeout(() => void cursor.ask(cell), rest);
  }

  #spread(): number {
    const [a, b] = [...this.#fingers.values()];
    return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 0;
  }

  #pinch(e: PointerEvent): void {
    const now = this.#spread();
    if (now <= 1.25 * this.#apart && now >= 0.8 * this.#apart) return;
    this.cursor.zoom(now > this.#apart ? -1 : 1, ...this.#at(e));
    this.#apart = now;
  }
}
