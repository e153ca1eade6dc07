import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By measured duration, as the reporter prints it: file size says little about tests with browsers or processes. */
const longest = [
  'test/faults/procedures',
  'test/faults/changes',
  'test/client/examples',
  'test/faults/uploads',
  'test/faults/crashes',
  'test/faults/floods',
  'test/faults/outages',
  'test/contract/uploads/scan',
  'test/faults/rounds',
  'test/faults/removals',
  'test/faults/upgrade',
  'test/pages/accessibility',
  'test/faults/webhooks',
  'test/integration/login-methods/explored',
  'test/operations/deploy',
  'test/contract/lifecycle/password-reset',
  'test/pages/avatar',
  'test/pages/admin',
  'test/contract/credentials/login-methods',
  'test/contract/uploads/parts',
  'test/contract/uploads/variants',
  'test/operations/start',
  'test/pages/flows',
  'test/integration/webhooks/sender',
  'test/contract/login/email-codes',
  'test/contract/uploads/inspection',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const found = longest.findIndex((start) => moduleId.includes(start));
  return found === -1 ? longest.length : found;
};

/**
 * Sorts by group, then by project: a worker is kept for files of one project, and `unit`, with short files, is last. In
 * a project the longest files come first, so that no worker runs one alone at the end; others keep Vitest's order.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const group = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return sorted.sort(
      (a, b) => group(a) - group(b) || a.project.name.localeCompare(b.project.name) || rank(a) - rank(b),
    );
  }
}
