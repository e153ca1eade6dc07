import { expect, test } from 'vitest';
import { centreOf, isCentre, MAX_ZOOM, moved, zoomed, zoomOf } from '../../../client/src/editor/square.ts';

const picture = { width: 400, height: 300 };
const centre = { x: 0.5, y: 0.5 };

test('the square begins at the centre, as large as the picture allows', () => {
  expect(centreOf(picture)).toEqual({ x: 50, y: 0, side: 300 });
  expect(centreOf({ width: 300, height: 400 })).toEqual({ x: 0, y: 50, side: 300 });
});

test('the picture follows the pointer up to its edges', () => {
  const square = { x: 100, y: 100, side: 100 };
  expect(moved(picture, square, { x: 0.5, y: -0.25 })).toEqual({ x: 50, y: 125, side: 100 });
  expect(moved(picture, square, { x: 9, y: 9 })).toEqual({ x: 0, y: 0, side: 100 });
  expect(moved(picture, square, { x: -9, y: -9 })).toEqual({ x: 300, y: 200, side: 100 });
});

test('a zoom keeps the point under the pointer, stays within the picture and ends at its limits', () => {
  const square = { x: 100, y: 100, side: 100 };
  expect(zoomed(picture, square, 2, { x: 1, y: 0 })).toEqual({ x: 150, y: 100, side: 50 });
  expect(zoomed(picture, square, 0.5, centre)).toEqual({ x: 50, y: 50, side: 200 });
  expect(zoomed(picture, square, 0.01, centre)).toEqual({ x: 0, y: 0, side: 300 });
  expect(zoomOf(picture, zoomed(picture, square, 99, centre))).toBe(MAX_ZOOM);
});

test('a square is the centre after moves and zooms that lead back to it, and no other is', () => {
  const away = moved(picture, zoomed(picture, centreOf(picture), 3, { x: 0.1, y: 0.7 }), { x: 0.3, y: 0.3 });
  expect(isCentre(picture, away)).toBe(false);
  const whole = zoomed(picture, away, 1 / 99, centre);
  expect(isCentre(picture, whole)).toBe(false);
  expect(isCentre(picture, moved(picture, whole, { x: (whole.x - 50) / 300, y: 0 }))).toBe(true);
});
