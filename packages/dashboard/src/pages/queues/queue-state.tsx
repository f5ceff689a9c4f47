import { Status, type Tone } from '../../parts/status.js';
import type { QueueItem } from '../../queue/api.js';

/** The state of a queue in one word. */
export function QueueState({ summary }: Pick<QueueItem, 'summary'>) {
  const [tone, word] = stateOf(summary);
  return <Status tone={tone}>{word}</Status>;
}

function stateOf({ paused, pending, in_flight }: QueueItem['summary']): [Tone, string] {
  if (paused) return ['warn', 'paused'];
  if (in_flight > 0) return ['busy', 'working'];
  return pending > 0 ? ['calm', 'waiting'] : ['calm', 'idle'];
}
