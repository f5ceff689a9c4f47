import { Status, type Tone } from '../../parts/status.js';
import type { QueueItem } from './api.js';

/** What a queue is doing, in a word. */
export function Standing({ summary }: Pick<QueueItem, 'summary'>) {
  const [tone, word] = standingOf(summary);
  return <Status tone={tone}>{word}</Status>;
}

function standingOf({ paused, pending, in_flight }: QueueItem['summary']): [Tone, string] {
  if (paused) return ['warn', 'paused'];
  if (in_flight > 0) return ['busy', 'working'];
  return pending > 0 ? ['calm', 'waiting'] : ['calm', 'idle'];
}
