// Widths of texts in the page's typeface, for drawings that the browser does not lay out.

let loads = $state(0);
document.fonts.addEventListener("loadingdone", () => ++loads);

const pen = document.createElement("canvas").getContext("2d")!;
let family = "";
let familyOf = -1;

/** The number of times that fonts were loaded. Effects that read it run again after each load. */
export const fontLoads = (): number => loads;

/** The width of a text in pixels. Effects that measure run again when a font has been loaded. */
export function widthOf(text: string, size = 13, bold = false): number {
  if (familyOf !== loads || family === "") {
    family = getComputedStyle(document.body).fontFamily;
    familyOf = loads;
  }
  pen.font = `${bold ? "bold " : ""}${size}px ${family}`;
  return pen.measureText(text).width;
}
