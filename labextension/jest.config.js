/** Unit tests of the model: plain functions and one class, no JupyterLab. */
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.spec.ts'],
  transform: {
    '\\.tsx?$': [
      'ts-jest',
      { tsconfig: '<rootDir>/test/tsconfig.json', diagnostics: true }
    ]
  },
  transformIgnorePatterns: ['/node_modules/(?!@lumino)']
};
