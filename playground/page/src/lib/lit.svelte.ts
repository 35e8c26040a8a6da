// The bit that the reader points at, in a text or in the picture. Both highlight it.

/** The number of the bit as the page shows it; -1: none. */
export const lit = $state({ bit: -1 });
