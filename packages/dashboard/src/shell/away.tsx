import { firstTrouble, serverTitles, stateText } from '../api/server-states.js';
import { useServers } from '../api/servers.js';

/** On every page while a server is away: what is shown is old, and actions would fail. */
export function Away() {
  const servers = useServers();
  const name = firstTrouble(servers);
  if (!name) return null;
  const { detail } = servers[name];
  return (
    <div className="away" role="status">
      <strong>
        {serverTitles[name]}: {stateText(servers[name])}.
      </strong>
      <span>
        Figures may be out of date, and its actions are disabled until it is back.
        {detail && ` ${detail}`}
      </span>
    </div>
  );
}
