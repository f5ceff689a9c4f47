import { useQuery } from '@tanstack/react-query';
import { daemon } from '../../api/client.js';
import { queries } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { BackendTable } from './backend-table.js';
import { Thinking } from './thinking.js';
import { UsagePanel } from './usage-panel.js';
import './backends.css';

/** Agent command lines, their billing tiers and usage limits. */
export default function BackendsPage() {
  const registry = useQuery(queries.registry());
  const rescan = useAction({
    run: () => daemon.call('rescanBackends'),
    done: ({ backends }) => {
      const found = backends.filter(({ installed }) => installed).length;
      return `Found ${found} installed ${found === 1 ? 'backend' : 'backends'}.`;
    },
    refresh: ['registry', 'usage'],
  });
  return (
    <Page
      title="Backends & usage"
      actions={<Button action={rescan}>{rescan.isPending ? 'Scanning' : 'Rescan'}</Button>}
    >
      <UsagePanel />
      <Loaded query={registry} rows={8}>
        {({ backends, settings }) => (
          <>
            {!backends.some(({ installed }) => installed) && (
              <Empty title="No backend is installed.">
                Install a coding-agent command line such as <code>claude</code> or{' '}
                <code>codex</code>, or start a local model, then rescan.
              </Empty>
            )}
            <BackendTable backends={backends} />
            <Thinking settings={settings} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
