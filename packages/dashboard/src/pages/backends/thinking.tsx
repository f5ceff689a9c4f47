import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { words } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';

type Mode = DaemonSchema<'ThinkingMode'>;

const modes: readonly { mode: Mode; text: string }[] = [
  { mode: 'local_only', text: 'The local model alone' },
  { mode: 'free_plus_local', text: 'Free backends, then the local model' },
];

/** Who answers the daemon's own small questions. */
export function Thinking({ settings }: { settings: DaemonSchema<'Settings'> }) {
  const set = useAction({
    run: (mode: Mode) => daemon.call('setThinkingMode', { body: { mode } }),
    done: ({ internal_thinking_mode: mode }) => `Thinking mode is ${words(mode)}.`,
    refresh: ['registry'],
  });
  const current = set.isPending ? set.variables : settings.internal_thinking_mode;
  return (
    <Panel title="Thinking">
      <fieldset className="thinking" disabled={set.isPending}>
        <legend className="muted">
          Who answers the daemon&apos;s own questions. A paid backend is never asked.
        </legend>
        {modes.map(({ mode, text }) => (
          <label key={mode} className="check">
            <input
              type="radio"
              name="thinking-mode"
              checked={current === mode}
              onChange={() => set.mutate(mode)}
            />
            {text}
          </label>
        ))}
      </fieldset>
    </Panel>
  );
}
