import { ApiError } from '@millrace/client';
import { QueryClient } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { liveStore } from './api/live.js';
import { logInByLink } from './api/login.js';
import { listenForShortcuts } from './parts/shortcuts.js';
import { App } from './shell/app.js';
import { repairLanguage } from './shell/language.js';
import { startTheme } from './style/theme.js';
import './style/theme.css';
import './style/base.css';
import './style/parts.css';

const pollMs = 5000;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Retry only when the daemon cannot be reached; an error response would repeat.
      retry: (failures, error) => error instanceof ApiError && error.status === 0 && failures < 1,
      networkMode: 'always',
      refetchOnWindowFocus: () => liveStore.value !== 'live',
      // Events keep the cache up to date; without them the page polls.
      refetchInterval: ({ state: { error, status } }) => {
        const isClientError =
          error instanceof ApiError && error.status >= 400 && error.status < 500;
        const isLive = liveStore.value === 'live' && status === 'success';
        return isClientError || isLive ? false : pollMs;
      },
    },
    mutations: { networkMode: 'always' },
  },
});

repairLanguage(navigator);
startTheme();
listenForShortcuts();
await logInByLink();
createRoot(document.getElementById('root')!).render(<App client={client} />);
