# Machine learning with scikit-learn: split, scale, fit, tune, evaluate, predict.
# %%
import numpy as np
from sklearn.datasets import load_iris, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

iris = load_iris()
iris.feature_names
# %%
X, y = iris.data, iris.target
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
X_train.shape, np.bincount(y_test)
# %%
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.linear_model import LogisticRegression, SGDClassifier

model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
# %%
model.fit(X_train, y_train)
print(round(model.score(X_test, y_test), 4))
# %%
scaler = model[0]
print(scaler.mean_.round(3), model.named_steps["standardscaler"] is scaler)
# %%
from sklearn.tree import DecisionTreeClassifier, export_text

tree = DecisionTreeClassifier(max_depth=2, random_state=1).fit(X_train, y_train)
print(export_text(tree, feature_names=list(iris.feature_names)))
# %%
search = GridSearchCV(tree, {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 5]}, cv=3)
search.fit(X_train, y_train)
search.best_params_, round(search.best_score_, 4)
# %%
tree.set_params(max_depth=4)
best = search.best_estimator_
print(tree.get_params()["max_depth"], best.get_depth(), tree.tree_.max_depth)
# %%
online = SGDClassifier(random_state=3)
for part in np.array_split(np.arange(len(X_train)), 4):
    online.partial_fit(X_train[part], y_train[part], classes=[0, 1, 2])
online.t_
# %%
online.partial_fit(X_train[:20], y_train[:20])
print(online.t_, online.coef_.round(2)[0])
# %%
from sklearn.cluster import KMeans

np.random.seed(7)
kmeans = KMeans(3, n_init=2).fit(X)
labels = kmeans.labels_
print(np.sort(np.bincount(labels)), round(float(kmeans.inertia_), 3))
# %%
from sklearn.decomposition import PCA

pca = PCA(2)
flat = pca.fit_transform(X)
flat[labels == 0, 0] = 0.0
print(pca.explained_variance_ratio_.round(4), flat.shape)
# %%
scores = cross_val_score(model, X, y, cv=5)
scores.round(3)
# %%
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

texts = ["the cat sat", "the dog sat down", "a cat and a dog"]
vectorizer = CountVectorizer()
matrix = vectorizer.fit_transform(texts)
matrix.toarray()
# %%
texts.append("one more cat")
tfidf = TfidfVectorizer(vocabulary=vectorizer.vocabulary_).fit(texts)
print(matrix.shape, sorted(vectorizer.vocabulary_)[:3], tfidf.idf_.round(3))
