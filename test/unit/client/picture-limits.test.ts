import { expect, test } from 'vitest';
import { AVATAR_SIDE, MAX_BYTES, MAX_PIXELS, POST_SIDE, TAKEN_TYPES } from '../../../client/src/editor/limits.ts';
import * as service from '../../../server/shared/image-limits.ts';

test('the editor makes pictures that the service takes', () => {
  expect(TAKEN_TYPES).toEqual(service.imageTypes);
  expect([MAX_BYTES, MAX_PIXELS]).toEqual([service.MAX_IMAGE_BYTES, service.MAX_PIXELS]);
  expect([AVATAR_SIDE, POST_SIDE]).toEqual([2 * service.pictureSides.avatar, service.pictureSides.post]);
});
