import { Page } from '../../parts/page.js';
import { Savings } from './savings.js';
import { Spend } from './spend.js';
import { Value } from './value.js';
import './spend.css';

/** Spend of the agents and token savings. */
export default function SpendPage() {
  return (
    <Page title="Spend & savings">
      <Spend />
      <Value />
      <Savings />
    </Page>
  );
}
