import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By their duration, which the reporter prints: a browser or whole processes weigh more than the file size. */
const longest = [
  'test/faults/uploads',
  'test/faults/rounds',
  'test/faults/procedures',
  'test/faults/changes',
  'test/faults/crashes',
  'test/faults/upgrade',
  'test/faults/enumeration',
  'test/faults/floods',
  'test/faults/outages',
  'test/faults/removals',
  'test/client/examples',
  'test/operations/users-import',
  'test/contract/credentials/login-methods',
  'test/contract/lifecycle/password-reset',
  'test/pages/flows',
  'test/contract/lifecycle/registration',
  'test/operations/start',
  'test/contract/users/users',
  'test/contract/sessions/sessions',
  'test/contract/uploads/inspection',
  'test/pages/accessibility',
  'test/contract/uploads/quota',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const found = longest.findIndex((start) => moduleId.includes(start));
  return found === -1 ? longest.length : found;
};

/** Starts the longest files first, so that no worker runs one alone at the end; others in Vitest's order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const group = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return sorted.sort((a, b) => group(a) - group(b) || rank(a) - rank(b));
  }
}
