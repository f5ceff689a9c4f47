import type { DaemonSchema } from '@millrace/contract/daemon';
import { Bar } from '../parts/bar.js';
import { tokens } from '../parts/format.js';

type Session = DaemonSchema<'Session'>;

/** Context tokens of an agent relative to the critical threshold. */
export function ContextBar({ session, critical }: { session: Session; critical: number }) {
  const { context_tokens: used, context_state: state } = session;
  const tone = state === 'critical' ? 'bad' : state === 'warning' ? 'warn' : undefined;
  // Agents without a transcript have no figure: a bar would look like one.
  if (used === null) {
    return (
      <span className="context muted" role="img" aria-label="Context unknown">
        unknown
      </span>
    );
  }
  const share = (100 * used) / critical;
  const size = tokens(used);
  const label = tone ? `Context ${size}, ${state}` : `Context ${size}`;
  return (
    <span className="context" title={label}>
      <Bar label={label} percent={share} tone={tone} />
      <span className={tone ? `context-text status-${tone}` : 'context-text muted'}>
        {tone && <span aria-hidden="true">{tone === 'bad' ? '✕ ' : '▲ '}</span>}
        {size}
      </span>
    </span>
  );
}
