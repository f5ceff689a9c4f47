import { useQuery } from '@tanstack/react-query';
import { useId, useMemo, useState, type KeyboardEvent } from 'react';
import { queries } from '../api/queries.js';
import { useServers } from '../api/servers.js';
import { databaseQueries } from '../pages/database/api.js';
import { queueQueries } from '../queue/api.js';
import { Dialog } from '../parts/dialog.js';
import { words } from '../parts/format.js';
import { navigate } from '../parts/location.js';
import { useShortcutList } from '../parts/shortcuts.js';
import { pages } from './pages.js';
import { isTaskId, searchItems, type PaletteItem } from './palette-search.js';
import './palette.css';

/** Goes to any page, queue, task, agent or collection, or runs an action of the page. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const listId = useId();
  const items = useItems();
  const found = useMemo(() => {
    const matching = searchItems(items, text);
    return isTaskId(text) ? [taskItem(text.trim().toUpperCase()), ...matching] : matching;
  }, [items, text]);
  const chosen = Math.min(at, found.length - 1);
  const run = (item: PaletteItem | undefined) => {
    if (!item) return;
    onClose();
    item.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (chosen + step + found.length) % Math.max(found.length, 1);
      setAt(next);
      document.getElementById(`${listId}-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(found[chosen]);
    } else if (event.key === 'Escape') {
      // A search field would only clear itself.
      event.preventDefault();
      onClose();
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="search"
        role="combobox"
        aria-label="Search pages, queues, tasks, agents, collections and actions"
        aria-expanded
        aria-controls={listId}
        aria-activedescendant={found.length > 0 ? `${listId}-${chosen}` : undefined}
        placeholder="Queue, task id, agent, collection, action"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={listId} role="listbox" aria-label="Results" className="palette">
        {found.map((item, index) => (
          <li
            key={item.id}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => run(item)}
          >
            <span className="muted palette-kind">{item.kind}</span>
            <span className="ellipsis">{item.title}</span>
            {item.note && <span className="muted">{item.note}</span>}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="muted">Nothing matches.</p>}
    </Dialog>
  );
}

const goTo = (path: string) => () => navigate(path);

const taskItem = (id: string): PaletteItem => ({
  id: `task ${id}`,
  kind: 'Task',
  title: id,
  run: goTo(`/tasks/${id}`),
});

function useItems(): readonly PaletteItem[] {
  const servers = useServers();
  const shortcuts = useShortcutList();
  const { data: sessions = [] } = useQuery(queries.sessions());
  const { data: queues = [] } = useQuery({
    ...queueQueries.all(),
    enabled: servers.queue.state === 'live',
  });
  const { data: database } = useQuery({
    ...databaseQueries.status(),
    enabled: servers.database.state === 'live',
  });
  return useMemo(() => {
    // Going to a page is an entry of its own, and row keys are no actions.
    const actions = new Map(
      shortcuts
        .filter(({ keys }) => !keys.startsWith('g ') && keys !== 'j' && keys !== 'k')
        .map(({ keys, label, run }) => [keys, { label, run, keys }]),
    );
    return [
      ...[...actions.values()].map(({ keys, label, run }) => ({
        id: `action ${keys}`,
        kind: 'Action',
        title: label,
        note: keys,
        run,
      })),
      ...pages.flatMap(({ path, navigation }) =>
        navigation ? [{ id: path, kind: 'Page', title: navigation.title, run: goTo(path) }] : [],
      ),
      ...queues.map(({ name, summary }) => ({
        id: `queue ${name}`,
        kind: 'Queue',
        title: name,
        note: summary.paused ? 'paused' : undefined,
        run: goTo(`/queues/${name}`),
      })),
      ...sessions.map(({ id, name, status }) => ({
        id: `agent ${id}`,
        kind: 'Agent',
        title: name,
        note: words(status),
        run: goTo(`/agents/${id}`),
      })),
      ...(database?.collections ?? []).map(({ name }) => ({
        id: `collection ${name}`,
        kind: 'Collection',
        title: name,
        run: goTo(`/database/${encodeURIComponent(name)}`),
      })),
    ];
  }, [shortcuts, queues, sessions, database]);
}
