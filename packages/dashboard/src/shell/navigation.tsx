import { useQuery } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { Link } from 'wouter';
import { liveStore, type LiveState } from '../api/live.js';
import { queries } from '../api/queries.js';
import {
  firstTrouble,
  serverTitles,
  stateText,
  type Server,
  type ServerName,
} from '../api/server-states.js';
import { useServers } from '../api/servers.js';
import { tokenStore } from '../api/token.js';
import { Button, Select } from '../parts/controls.js';
import { usePath } from '../parts/location.js';
import { useShortcut } from '../parts/shortcuts.js';
import icon from '../style/icon.svg';
import { density, theme, themeTexts, type Density, type Theme } from '../style/theme.js';
import { groups, pages } from './pages.js';

interface NavigationProps {
  onHelp: () => void;
  onPalette: () => void;
}

export function Navigation({ onHelp, onPalette }: NavigationProps) {
  const [isOpen, setIsOpen] = useState(false);
  const unread = useUnread();
  useShortcut('?', 'Show this help', onHelp);
  return (
    <nav className={isOpen ? 'nav nav-open' : 'nav'} aria-label="Pages">
      <div className="nav-top">
        <Link href="/" className="brand" onClick={() => setIsOpen(false)}>
          <img src={icon} alt="" width={24} height={24} />
          Millrace
        </Link>
        <LiveSign />
        <button
          type="button"
          className="nav-toggle"
          aria-expanded={isOpen}
          aria-controls="nav-list"
          onClick={() => setIsOpen(!isOpen)}
        >
          Menu
        </button>
      </div>
      <div id="nav-list" className="nav-list">
        <ServerList />
        {groups.map((group) => (
          <div key={group} className="nav-group">
            <div className="nav-group-title">{group}</div>
            <ul>
              {pages.map(
                ({ path, navigation }) =>
                  navigation?.group === group && (
                    <NavItem
                      key={path}
                      path={path}
                      title={navigation.title}
                      shortcut={`g ${navigation.key}`}
                      count={path === '/inbox' ? unread : 0}
                      onFollow={() => setIsOpen(false)}
                    />
                  ),
              )}
            </ul>
          </div>
        ))}
        <div className="nav-foot">
          <ThemeChoice />
          <DensityChoice />
          <Button className="plain" onClick={onPalette}>
            Go to <kbd>Ctrl K</kbd>
          </Button>
          <Button className="plain" onClick={onHelp}>
            Shortcuts <kbd>?</kbd>
          </Button>
        </div>
      </div>
    </nav>
  );
}

interface NavItemProps {
  path: string;
  title: string;
  shortcut: string;
  count: number;
  onFollow: () => void;
}

function NavItem({ path, title, shortcut, count, onFollow }: NavItemProps) {
  const [location, navigate] = usePath();
  useShortcut(shortcut, `Go to ${title}`, () => navigate(path));
  const isHere = path === '/' ? isFleet(location) : location.startsWith(path);
  return (
    <li>
      <Link href={path} aria-current={isHere ? 'page' : undefined} onClick={onFollow}>
        {title}
        {count > 0 && (
          <span className="badge" aria-label={`${count} unread`}>
            {count}
          </span>
        )}
      </Link>
    </li>
  );
}

const isFleet = (location: string) => location === '/' || location.startsWith('/agents');

function useUnread(): number {
  const needsLogin = useSyncExternalStore(tokenStore.subscribe, tokenStore.isLoginRequired);
  const { data = [] } = useQuery({ ...queries.inbox(), enabled: !needsLogin });
  return data.filter(({ read }) => !read).length;
}

const liveTexts: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Disconnected',
};

/** One word for all servers: `Live` only while every server that runs answers. */
function LiveSign() {
  const events = liveStore.use();
  const servers = useServers();
  const trouble = firstTrouble(servers);
  const isDaemonGone =
    events === 'lost' || (trouble === 'daemon' && servers.daemon.state === 'down');
  const live = isDaemonGone || trouble ? 'lost' : events;
  const text = isDaemonGone || !trouble ? liveTexts[live] : troubleText(trouble, servers[trouble]);
  const hint =
    live === 'live'
      ? 'Connected: changes appear immediately.'
      : isDaemonGone
        ? 'The event stream is disconnected. The page polls every few seconds instead.'
        : 'The page shows the last data it has.';
  return (
    <span className={`live live-${live}`} role="status" title={hint}>
      <span className="live-dot" aria-hidden="true" />
      {text}
    </span>
  );
}

function troubleText(name: ServerName, { state }: Server): string {
  return `${serverTitles[name]} ${state === 'down' ? 'not running' : 'not answering'}`;
}

/** Liveness of each server, with the age of its data. */
function ServerList() {
  const servers = useServers();
  return (
    <ul className="servers" aria-label="Servers">
      {(['daemon', 'queue', 'database'] as const).map((name) => {
        const server = servers[name];
        return (
          <li
            key={name}
            className={`live live-${signs[server.state]}`}
            title={server.detail ?? undefined}
          >
            <span className="live-dot" aria-hidden="true" />
            <span>
              {serverTitles[name]} {stateText(server)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

const signs: Readonly<Record<Server['state'], string>> = {
  unknown: 'connecting',
  live: 'live',
  no_answer: 'lost',
  down: 'off',
};

function ThemeChoice() {
  const chosen = theme.use();
  useShortcut('t', 'Switch between light and dark', () =>
    theme.set(chosen === 'dark' ? 'light' : 'dark'),
  );
  return (
    <label className="theme">
      Theme
      <Select value={chosen} options={themeTexts} onChange={(next) => theme.set(next as Theme)} />
    </label>
  );
}

const densityTexts = { comfortable: 'Comfortable', compact: 'Compact' };

function DensityChoice() {
  return (
    <label className="theme">
      Density
      <Select
        value={density.use()}
        options={densityTexts}
        onChange={(next) => density.set(next as Density)}
      />
    </label>
  );
}
