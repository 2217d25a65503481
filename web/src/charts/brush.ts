// Reports drags over a chart, in pixels.
import type { Attachment } from 'svelte/attachments';

export interface Drag {
  from: number;
  to: number;
}

// A click may move by a few pixels.
const DRAG_PX_MIN = 6;

export function dragging(
  isInside: (x: number, y: number) => boolean,
  show: (drag: Drag | null) => void,
  done: (drag: Drag) => void,
): Attachment<HTMLElement> {
  return (node) => {
    let start: number | null = null;
    const xOf = (event: PointerEvent): number => event.clientX - node.getBoundingClientRect().left;
    const dragOf = (event: PointerEvent): Drag | null => {
      if (start === null || Math.abs(xOf(event) - start) < DRAG_PX_MIN) return null;
      return { from: Math.min(start, xOf(event)), to: Math.max(start, xOf(event)) };
    };
    const down = (event: PointerEvent): void => {
      const y = event.clientY - node.getBoundingClientRect().top;
      if (event.button !== 0 || !isInside(xOf(event), y)) return;
      start = xOf(event);
      node.setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent): void => {
      if (start !== null) show(dragOf(event));
    };
    const up = (event: PointerEvent): void => {
      const drag = dragOf(event);
      stop();
      if (drag !== null) done(drag);
    };
    const stop = (): void => {
      start = null;
      show(null);
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') stop();
    };
    const listeners = new AbortController();
    const { signal } = listeners;
    node.addEventListener('pointerdown', down, { signal });
    node.addEventListener('pointermove', move, { signal });
    node.addEventListener('pointerup', up, { signal });
    node.addEventListener('pointercancel', stop, { signal });
    document.addEventListener('keydown', escape, { signal });
    return () => listeners.abort();
  };
}
