import { QueryClient } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { liveStore } from './api/live.js';
import { logInByLink } from './api/login.js';
import { ApiProblem } from './api/problem.js';
import { listenForShortcuts } from './parts/shortcuts.js';
import { App } from './shell/app.js';
import { startTheme } from './style/theme.js';
import './style/theme.css';
import './style/base.css';
import './style/parts.css';

const pollMs = 5000;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // A daemon on this machine answers or it does not; a refusal stays one.
      retry: (failures, error) => error instanceof ApiProblem && error.status === 0 && failures < 1,
      networkMode: 'always',
      refetchOnWindowFocus: () => liveStore.current() !== 'live',
      // Events keep everything up to date; without them the page asks.
      refetchInterval: ({ state: { error, status } }) => {
        const isRefused = error instanceof ApiProblem && error.status >= 400 && error.status < 500;
        const isLive = liveStore.current() === 'live' && status === 'success';
        return isRefused || isLive ? false : pollMs;
      },
    },
    mutations: { networkMode: 'always' },
  },
});

startTheme();
listenForShortcuts();
await logInByLink();
createRoot(document.getElementById('root')!).render(<App client={client} />);
