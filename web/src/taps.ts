// What was under a finger has moved: for a moment, a tap would be on another thing than was meant.
const MOVED_MS = 800;
let timer: ReturnType<typeof setTimeout> | undefined;

export function ignoreTaps(): void {
  document.body.style.pointerEvents = 'none';
  clearTimeout(timer);
  timer = setTimeout(() => (document.body.style.pointerEvents = ''), MOVED_MS);
}
