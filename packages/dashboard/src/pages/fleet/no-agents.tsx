import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { Empty } from '../../parts/states.js';

/** The empty fleet: which command-line tools were looked for, and how to get one. */
export function NoAgents() {
  const { data } = useQuery(queries.registry());
  const clis = data?.backends.filter(({ is_local }) => !is_local) ?? [];
  const found = clis.filter(({ installed }) => installed).map(({ id }) => id);
  const missing = clis.filter(({ installed }) => !installed).map(({ id }) => id);
  return (
    <Empty title="No agents yet.">
      <p>
        Start one here, or with <code>ctl agent spawn &quot;Fix the failing test&quot;</code>.
      </p>
      {clis.length > 0 && (
        <p>
          {found.length > 0 ? `Found ${found.join(', ')}. ` : 'No agent CLI is installed. '}
          {missing.length > 0 && `Looked on PATH for ${missing.join(', ')}.`}
        </p>
      )}
      {clis.length > 0 && found.length === 0 && (
        <p>
          Install one, for example <code>npm install -g @anthropic-ai/claude-code</code>, then
          rescan on <Link href="/backends">Backends &amp; usage</Link>.
        </p>
      )}
    </Empty>
  );
}
