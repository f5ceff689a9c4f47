import { flowApiTests } from './support/flow-api.js';
import { flowEdgeTests } from './support/flow-edges.js';

flowApiTests('the embedded store');
flowEdgeTests('the embedded store');
