// Measures how long the reader waits between a change and its paint, as User Timing entries.
import { tick } from 'svelte';

type Change = 'filter' | 'sort';

/** Call when a change begins. The measure ends in the first task after the frame that shows it. */
export async function untilPainted(change: Change): Promise<void> {
  const start = performance.now();
  await tick();
  requestAnimationFrame(() => {
    // A message is delivered after the frame has been painted; a timer would add its own delay.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      // One entry of each kind is enough to read, and the buffer must not grow with use.
      performance.clearMeasures(change);
      performance.measure(change, { start, end: performance.now() });
      port1.close();
    };
    port2.postMessage(null);
  });
}
