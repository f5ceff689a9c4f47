import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { queries } from '../../api/queries.js';
import { logOut } from '../../api/login.js';
import { tokenStore } from '../../api/token.js';
import { useChoice } from '../../parts/choice.js';
import { Button, Check, DialogButton, Select } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { unknown } from '../../parts/format.js';
import { useTextParam } from '../../parts/location.js';
import { Fact, Page, Panel } from '../../parts/page.js';
import { useShortcutsOn } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { toast } from '../../parts/toast.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { theme, themeTexts, type Theme } from '../../style/theme.js';
import { valueText, whyFixed, type ConfigEntry, type ConfigView } from './draft.js';
import { EditDialog } from './edit-dialog.js';
import './settings.css';

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
  const [areEnabled, setEnabled] = useShortcutsOn();
  const token = useSyncExternalStore(tokenStore.subscribe, tokenStore.current);
  const { data: config } = useQuery(queries.config());
  const isOpen = config?.entries.some(({ key, value }) => key === 'auth' && value === 'none');
  return (
    <Panel title="This browser">
      <div className="panel-body stack">
        <label className="settings-line">
          Theme
          <Select
            value={theme.use()}
            options={themeTexts}
            onChange={(next) => theme.set(next as Theme)}
          />
        </label>
        <Check label="Keyboard shortcuts" checked={areEnabled} onChange={setEnabled} />
        <div className="row">
          {token === undefined ? (
            <span className="muted">
              {isOpen
                ? 'No login is needed: the daemon runs without authentication.'
                : 'Logged in with a link, so no token is stored here.'}
            </span>
          ) : (
            <Button
              onClick={() => {
                tokenStore.clear();
                toast('good', 'Token deleted.');
              }}
            >
              Delete token
            </Button>
          )}
          {!isOpen && <Button onClick={() => void logOut()}>Log out</Button>}
        </div>
      </div>
    </Panel>
  );
}

function DaemonSettings({ view }: { view: ConfigView }) {
  const { data: health } = useQuery(queries.health());
  const [text, setText] = useTextParam('q');
  const wanted = text.toLowerCase();
  const changed = view.entries.filter(({ source, pending }) => source !== 'default' || pending);
  const options = { changed: `Changed ${changed.length}`, all: `All ${view.entries.length}` };
  // A phone would have to scroll through all of them.
  const fallback = useIsNarrow() ? 'changed' : 'all';
  const [which, choice] = useChoice('show', fallback, 'Settings', options);
  // A search looks everywhere.
  const shown =
    which === 'changed' && wanted === ''
      ? changed
      : view.entries.filter(({ key }) => key.toLowerCase().includes(wanted));
  return (
    <Panel
      title="Daemon"
      actions={
        <>
          <input
            type="search"
            aria-label="Search settings"
            placeholder="Search settings"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          {view.entries.some(({ editable }) => editable) && (
            <DialogButton label="Edit settings">
              {(onClose) => <EditDialog {...{ view, onClose }} />}
            </DialogButton>
          )}
        </>
      }
    >
      <dl className="facts">
        <Fact name="Version">{health?.version ?? unknown}</Fact>
        <Fact name="Config file" className="mono">
          {view.config_file ?? 'none'}
        </Fact>
        <Fact name="Data directory" className="mono">
          {view.data_dir}
        </Fact>
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
        Settings that need a restart are changed with <code>ctl config set KEY VALUE</code>, in the
        config file, with a flag or with a <code>MILLRACE_…</code> variable. Tiers, the default
        backend and the thinking mode are under Backends &amp; usage.
      </p>
      <div className="panel-body">{choice}</div>
      <DataTable label="Daemon settings" columns={columns} rows={shown} rowKey={({ key }) => key} />
      {shown.length === 0 && (
        <Empty title={wanted === '' ? 'Every setting has its default.' : 'No setting matches.'} />
      )}
    </Panel>
  );
}

const columns: readonly DataColumn<ConfigEntry>[] = [
  { header: 'Setting', className: 'mono', cell: ({ key }) => key },
  { header: 'Value', className: 'settings-value mono', cell: valueText },
  {
    header: 'Source',
    className: ({ source }) => (source === 'default' ? 'muted' : undefined),
    cell: ({ source, origin }) => <span title={origin ?? undefined}>{source}</span>,
  },
  { header: 'Change', className: 'muted', cell: (entry) => <ChangeNote entry={entry} /> },
];

/** How the setting can be changed, and whether the config file has another value. */
function ChangeNote({ entry }: { entry: ConfigEntry }) {
  if (!entry.pending) return whyFixed(entry) ?? 'applies at once';
  return (
    <Status tone="warn">
      {entry.needs_restart ? 'changed in the file, needs a restart' : 'changed in the file'}
    </Status>
  );
}
