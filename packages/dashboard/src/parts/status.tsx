import { words } from './format.js';

export type Tone = 'good' | 'busy' | 'calm' | 'warn' | 'bad' | 'off';

/** Each tone has a shape, so that color is not the only signal. */
const shapes: Readonly<Record<Tone, string>> = {
  good: '✓',
  busy: '▶',
  calm: '○',
  warn: '▲',
  bad: '✕',
  off: '–',
};

/** A status as color, shape and word. */
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
