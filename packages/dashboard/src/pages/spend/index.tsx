import { Page } from '../../parts/page.js';
import { Savings } from './savings.js';
import { Spend } from './spend.js';
import './spend.css';

/** What the agents cost, and what was kept out of the models. */
export default function SpendPage() {
  return (
    <Page title="Spend & savings">
      <Spend />
      <Savings />
    </Page>
  );
}
