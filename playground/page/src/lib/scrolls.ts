// Makes a scrollable element reachable by keyboard. {@attach scrolls}
export function scrolls(node: HTMLElement): () => void {
  const look = () => {
    if (node.scrollHeight > node.clientHeight) node.tabIndex = 0;
    else node.removeAttribute("tabindex");
  };
  const content = new MutationObserver(look);
  const size = new ResizeObserver(look);
  content.observe(node, { childList: true, subtree: true, characterData: true });
  size.observe(node);
  return () => {
    content.disconnect();
    size.disconnect();
  };
}
