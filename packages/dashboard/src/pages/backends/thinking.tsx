import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { words } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';

type Mode = DaemonSchema<'ThinkingMode'>;

const modes: readonly { mode: Mode; text: string }[] = [
  { mode: 'local_only', text: 'Local model only' },
  { mode: 'free_plus_local', text: 'Free backends, then the local model' },
];

/** Which backends the daemon itself may use. */
export function Thinking({ settings }: { settings: DaemonSchema<'Settings'> }) {
  const set = useAction({
    run: (mode: Mode) => daemon.call('setThinkingMode', { body: { mode } }),
    done: ({ internal_thinking_mode: mode }) => `Thinking mode: ${words(mode)}.`,
    refresh: ['registry'],
  });
  const current = set.isPending ? set.variables : settings.internal_thinking_mode;
  return (
    <Panel title="Thinking">
      <fieldset className="thinking" disabled={set.isDisabled}>
        <legend className="muted">
          Backends that the daemon uses for its own requests. It never uses a paid one.
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
