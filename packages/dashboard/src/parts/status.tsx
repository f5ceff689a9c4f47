import { words } from './format.js';

export type Tone = 'good' | 'busy' | 'calm' | 'warn' | 'bad' | 'off';

/** A shape for each tone, so that colour is never the only sign. */
const shapes: Readonly<Record<Tone, string>> = {
  good: '✓',
  busy: '▶',
  calm: '○',
  warn: '▲',
  bad: '✕',
  off: '–',
};

/** What something is, by colour, shape and word. */
export function Status({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span className={`status status-${tone}`}>
      <span aria-hidden="true" className="status-shape">
        {shapes[tone]}
      </span>
      {words(children)}
    </span>
  );
}
