import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { queries } from '../../api/queries.js';
import { logOut } from '../../api/login.js';
import { tokenStore } from '../../api/token.js';
import { unknown } from '../../parts/format.js';
import { useTextParam } from '../../parts/location.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcutsOn } from '../../parts/shortcuts.js';
import { Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { toast } from '../../parts/toast.js';
import { setTheme, useTheme, type Theme } from '../../style/theme.js';
import './settings.css';

type Entry = DaemonSchema<'ConfigEntry'>;

/** Settings of this browser, and those of the daemon with their source. */
export default function SettingsPage() {
  const config = useQuery(queries.config());
  return (
    <Page title="Settings">
      <BrowserSettings />
      <Loaded query={config} rows={8}>
        {(view) => <DaemonSettings view={view} />}
      </Loaded>
    </Page>
  );
}

function BrowserSettings() {
  const theme = useTheme();
  const [areEnabled, setEnabled] = useShortcutsOn();
  const token = useSyncExternalStore(tokenStore.subscribe, tokenStore.current);
  return (
    <Panel title="This browser">
      <div className="panel-body stack">
        <label className="settings-line">
          Theme
          <select value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
            <option value="auto">System</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={areEnabled}
            onChange={(event) => setEnabled(event.target.checked)}
          />
          Keyboard shortcuts
        </label>
        <div className="row">
          {token === undefined ? (
            <span className="muted">No token stored.</span>
          ) : (
            <button
              type="button"
              onClick={() => {
                tokenStore.clear();
                toast('good', 'Token deleted.');
              }}
            >
              Delete token
            </button>
          )}
          <button type="button" onClick={() => void logOut()}>
            Log out
          </button>
        </div>
      </div>
    </Panel>
  );
}

function DaemonSettings({ view }: { view: DaemonSchema<'ConfigView'> }) {
  const { data: health } = useQuery(queries.health());
  const [text, setText] = useTextParam('q');
  const wanted = text.toLowerCase();
  const shown = view.entries.filter(({ key }) => key.toLowerCase().includes(wanted));
  return (
    <Panel
      title="Daemon"
      actions={
        <input
          type="search"
          aria-label="Search settings"
          placeholder="Search settings"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      }
    >
      <dl className="facts">
        <dt>Version</dt>
        <dd>{health?.version ?? unknown}</dd>
        <dt>Config file</dt>
        <dd className="mono">{view.config_file ?? 'none'}</dd>
        <dt>Data directory</dt>
        <dd className="mono">{view.data_dir}</dd>
      </dl>
      {view.warnings.length > 0 && (
        <ul className="settings-warnings">
          {view.warnings.map((warning) => (
            <li key={warning}>
              <Status tone="warn">warning</Status> {warning}
            </li>
          ))}
        </ul>
      )}
      <p className="panel-body muted">
        Change a setting with <code>ctl config set KEY VALUE</code>, in the config file, with a flag
        or with a <code>MILLRACE_…</code> variable, then restart the daemon. Tiers, the default
        backend and the thinking mode are under Backends &amp; usage.
      </p>
      <div className="scroll-x" tabIndex={0} role="group" aria-label="Daemon settings">
        <table role="table" className="table cards">
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col">
                Setting
              </th>
              <th role="columnheader" scope="col">
                Value
              </th>
              <th role="columnheader" scope="col">
                Source
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.map((entry) => (
              <tr role="row" key={entry.key}>
                <th role="rowheader" scope="row" className="mono">
                  {entry.key}
                </th>
                <td role="cell" data-label="Value" className="settings-value mono">
                  {valueText(entry)}
                </td>
                <td
                  role="cell"
                  data-label="Source"
                  className={entry.source === 'default' ? 'muted' : undefined}
                >
                  <span title={entry.origin ?? undefined}>{entry.source}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function valueText({ value, secret }: Entry): string {
  if (value === null || value === undefined) return secret ? 'not set' : unknown;
  if (value === true) return 'on';
  if (value === false) return 'off';
  return typeof value === 'string' ? value || '""' : JSON.stringify(value);
}
