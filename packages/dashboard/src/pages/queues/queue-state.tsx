import { Status, type Tone } from '../../parts/status.js';
import type { QueueItem } from '../../queue/api.js';

/** The state of a queue in one word. */
export function QueueState({ summary }: Pick<QueueItem, 'summary'>) {
  const [tone, word] = stateOf(summary);
  return <Status tone={tone}>{word}</Status>;
}

function stateOf(summary: QueueItem['summary']): [Tone, string] {
  const { paused, pending, delayed = 0, in_flight, state, breaker } = summary;
  if (paused) return ['warn', 'paused'];
  if (state === 'no_worker') return ['bad', 'no worker'];
  if (breaker === 'open') return ['bad', 'circuit open'];
  if (breaker === 'half_open') return ['warn', 'half open'];
  if (in_flight > 0) return ['busy', 'working'];
  if (pending > delayed) return ['calm', 'waiting'];
  return delayed > 0 ? ['calm', 'delayed'] : ['calm', 'idle'];
}
