import { QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useState, useSyncExternalStore } from 'react';
import { Route, Router, Switch } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';
import { followEvents } from '../api/live.js';
import { followServers } from '../api/servers.js';
import { tokenStore } from '../api/token.js';
import { Empty, Loading } from '../parts/states.js';
import { Toasts } from '../parts/toast.js';
import { HelpSheet } from './help-sheet.js';
import { ErrorBoundary } from './error-boundary.js';
import { Navigation } from './navigation.js';
import { pages } from './pages.js';
import { TokenPrompt } from './token-prompt.js';

export function App({ client }: { client: QueryClient }) {
  return (
    <QueryClientProvider client={client}>
      <Router hook={useHashLocation}>
        <Shell client={client} />
      </Router>
    </QueryClientProvider>
  );
}

function Shell({ client }: { client: QueryClient }) {
  const needsLogin = useSyncExternalStore(tokenStore.subscribe, tokenStore.isLoginRequired);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
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
      <Navigation onHelp={() => setIsHelpOpen(true)} />
      <main id="content" tabIndex={-1}>
        {needsLogin ? <TokenPrompt /> : <Content />}
      </main>
      {isHelpOpen && <HelpSheet onClose={() => setIsHelpOpen(false)} />}
      <Toasts />
    </div>
  );
}

function Content() {
  const [location] = useHashLocation();
  return (
    <ErrorBoundary key={location}>
      <Suspense fallback={<Loading />}>
        <Switch>
          {pages.map(({ path, Content: Page }) => (
            <Route key={path} path={path}>
              {(params) => <Page params={params as Record<string, string>} />}
            </Route>
          ))}
          <Route>
            <Empty title="Page not found.">
              <a href="#/">Go to the fleet</a>
            </Empty>
          </Route>
        </Switch>
      </Suspense>
    </ErrorBoundary>
  );
}
