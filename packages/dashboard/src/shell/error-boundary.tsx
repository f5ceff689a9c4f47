import { Component, type ReactNode } from 'react';
import { Failure } from '../parts/states.js';

/** Shows the error of a page that throws; the rest of the dashboard keeps working. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (!('error' in this.state)) return this.props.children;
    return <Failure error={this.state.error} onRetry={() => location.reload()} />;
  }
}
