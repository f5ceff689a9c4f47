import { QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { Route, Router, Switch } from 'wouter';
import { followEvents } from '../api/live.js';
import { followServers } from '../api/servers.js';
import { tokenStore } from '../api/token.js';
import { usePath } from '../parts/location.js';
import { onDemand } from '../parts/on-demand.js';
import { Page } from '../parts/page.js';
import { Empty } from '../parts/states.js';
import { Toasts } from '../parts/toast.js';
import { Away } from './away.js';
import { HelpSheet } from './help-sheet.js';
import { ErrorBoundary } from './error-boundary.js';
import { Navigation } from './navigation.js';
import { pages } from './pages.js';
import { TokenPrompt } from './token-prompt.js';

const Palette = onDemand(() => import('./palette.js'), { rows: 0 });

export function App({ client }: { client: QueryClient }) {
  return (
    <QueryClientProvider client={client}>
      <Router hook={usePath}>
        <Shell client={client} />
      </Router>
    </QueryClientProvider>
  );
}

function Shell({ client }: { client: QueryClient }) {
  const needsLogin = useSyncExternalStore(tokenStore.subscribe, tokenStore.isLoginRequired);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  const [isPaletteOpen, setIsPaletteOpen] = useState(false);
  usePaletteKey(() => setIsPaletteOpen(true));
  const [path] = usePath();
  useEffect(() => setIsPaletteOpen(false), [path]);
  useEffect(() => followEvents(client), [client]);
  useEffect(followServers, []);
  // Queries that failed without a token are read again after the login.
  useEffect(() => {
    if (!needsLogin) void client.invalidateQueries();
  }, [client, needsLogin]);
  return (
    <div className="shell">
      <a
        className="skip"
        href="#content"
        onClick={(event) => {
          // The URL fragment is the route, so focus is set by script.
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        Skip to content
      </a>
      {!needsLogin && (
        <Navigation onHelp={() => setIsHelpOpen(true)} onPalette={() => setIsPaletteOpen(true)} />
      )}
      <main id="content" tabIndex={-1}>
        {!needsLogin && <Away />}
        {needsLogin ? <TokenPrompt /> : <Content />}
      </main>
      {isHelpOpen && <HelpSheet onClose={() => setIsHelpOpen(false)} />}
      {isPaletteOpen && <Palette onClose={() => setIsPaletteOpen(false)} />}
      <Toasts />
    </div>
  );
}

/** Ctrl-K, also while a field has the focus. */
function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      if (!tokenStore.isLoginRequired() && !document.querySelector('dialog[open]')) open();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}

function Content() {
  const [path] = usePath();
  return (
    <ErrorBoundary key={path}>
      <Switch>
        {pages.map(({ path, Content: Page }) => (
          <Route key={path} path={path}>
            {(params) => <Page params={params as Record<string, string>} />}
          </Route>
        ))}
        <Route>
          <Page title="Page not found">
            <Empty title="Page not found.">
              <a href="#/">Go to the fleet</a>
            </Empty>
          </Page>
        </Route>
      </Switch>
    </ErrorBoundary>
  );
}
