import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By what they take on two quiet cores: a browser, and whole processes, weigh more than the size of a file says. */
const longest = [
  'test/faults/rounds',
  'test/faults/uploads',
  'test/faults/crashes',
  'test/faults/enumeration',
  'test/faults/outages',
  'test/contract/login-methods',
  'test/contract/recovery',
  'test/pages/flows',
  'test/contract/registration',
  'test/start',
  'test/contract/users',
  'test/contract/sessions',
  'test/uploads/inspection',
  'test/pages/accessibility',
  'test/uploads/quota',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const found = longest.findIndex((start) => moduleId.includes(start));
  return found === -1 ? longest.length : found;
};

/** Starts the longest files first, so that no worker is left alone with one at the end; others as Vitest orders them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const group = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return sorted.sort((a, b) => group(a) - group(b) || rank(a) - rank(b));
  }
}
