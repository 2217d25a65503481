// Measures the time from a change to its paint, as User Timing entries.
import { tick } from 'svelte';

type Change = 'filter' | 'sort';

/** Call when a change begins. The measure ends in the first task after the frame that shows it. */
export async function measurePaint(change: Change): Promise<void> {
  const start = performance.now();
  await tick();
  requestAnimationFrame(() => {
    // A message is delivered right after the paint; a timer would add its own delay.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      // Keep one entry of each kind: the buffer must not grow.
      performance.clearMeasures(change);
      performance.measure(change, { start, end: performance.now() });
      port1.close();
    };
    port2.postMessage(null);
  });
}
